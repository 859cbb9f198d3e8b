BEGIN TRANSACTION;
CREATE TABLE "Entity" (
    "uid" TEXT NOT NULL PRIMARY KEY,
    "name" TEXT,
    "entityType" TEXT,
    "validTo" INTEGER,
    -- A row that another program inserts is new to us, so it is marked by itself.
    needs_embedding INTEGER NOT NULL DEFAULT 1 CHECK (needs_embedding IN (0, 1)),
    created_at INTEGER,
    updated_at INTEGER,
    "observations" TEXT
);
INSERT INTO "Entity" VALUES('e01','entity 1','thing',NULL,0,1772366400000,1772366400000,X'5B22666163742031225D');
INSERT INTO "Entity" VALUES('e02','entity 2','thing',NULL,0,1772366400000,1772366400000,X'5B22666163742032225D');
INSERT INTO "Entity" VALUES('e03','entity 3','thing',NULL,1,1772366400000,1772366400000,X'5B22666163742033225D');
INSERT INTO "Entity" VALUES('e04','entity 4','thing',NULL,1,1772366400000,1772366400000,X'5B22666163742034225D');
INSERT INTO "Entity" VALUES('e05','entity 5','thing',NULL,1,1772366400000,1772366400000,X'5B22666163742035225D');
INSERT INTO "Entity" VALUES('e06','entity 6','thing',NULL,1,1772366400000,1772366400000,X'5B22666163742036225D');
INSERT INTO "Entity" VALUES('e07','entity 7','thing',NULL,1,1772366400000,1772366400000,X'5B22666163742037225D');
INSERT INTO "Entity" VALUES('e08','entity 8','thing',NULL,1,1772366400000,1772366400000,X'5B22666163742038225D');
INSERT INTO "Entity" VALUES('e09','entity 9','thing',1772366647000,1,1772366400000,1772366647000,X'5B22666163742039225D');
INSERT INTO "Entity" VALUES('e10','entity 10','thing',NULL,1,1772366400000,1772366400000,X'5B2266616374203130225D');
INSERT INTO "Entity" VALUES('e11','entity 11','thing',NULL,1,1772366400000,1772366400000,X'5B2266616374203131225D');
INSERT INTO "Entity" VALUES('e12','entity 12','thing',NULL,1,1772366400000,1772366400000,X'5B2266616374203132225D');
INSERT INTO "Entity" VALUES('e13','entity 13','thing',NULL,1,1772366400000,1772366402000,X'5B22616E6F746865722066616374225D');
INSERT INTO "Entity" VALUES('e14','entity 14','thing',NULL,1,1772366400000,1772366400000,X'5B2266616374203134225D');
INSERT INTO "Entity" VALUES('e15','entity 15','thing',NULL,0,1772366400000,1772366400000,X'5B2266616374203135225D');
INSERT INTO "Entity" VALUES('e16','entity 16','thing',1772366402000,0,1772366400000,1772366402000,X'5B2266616374203136225D');
INSERT INTO "Entity" VALUES('e17','entity 17','thing',NULL,1,1772366400000,1772366400000,X'5B2266616374203137225D');
INSERT INTO "Entity" VALUES('e18','entity 18','thing',NULL,1,1772366400000,1772366400000,X'5B2266616374203138225D');
INSERT INTO "Entity" VALUES('e19','entity 19','thing',NULL,1,1772366400000,1772366400000,X'5B2266616374203139225D');
INSERT INTO "Entity" VALUES('e20','entity 20','thing',NULL,1,1772366400000,1772366400000,X'5B2266616374203230225D');
CREATE TABLE embedding_cursors (name TEXT NOT NULL PRIMARY KEY, uid TEXT);
INSERT INTO "embedding_cursors" VALUES('sweep','e07');
CREATE TABLE embedding_graph (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    mapping TEXT NOT NULL,
    probed_at INTEGER
);
INSERT INTO "embedding_graph" VALUES(1,'{"label": "Entity", "key": "uid", "name": "name", "entity_type": "entityType", "text": ["name", "entityType", "observations"], "valid_to": "validTo"}',NULL);
CREATE TABLE embedding_models (
    model TEXT NOT NULL PRIMARY KEY,
    dimensions INTEGER NOT NULL,
    vector_property TEXT NOT NULL UNIQUE,
    index_name TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL CHECK (state IN ('filling', 'active', 'retired')),
    registered_at INTEGER NOT NULL
);
INSERT INTO "embedding_models" VALUES('mock/mock@4',4,'embedding','embedding_index','active',1772366400000);
CREATE TABLE embedding_vectors (
    id INTEGER PRIMARY KEY,
    uid TEXT NOT NULL REFERENCES "Entity" ("uid") ON DELETE CASCADE,
    vector_property TEXT NOT NULL,
    model TEXT NOT NULL,
    version TEXT NOT NULL,
    embedded_at INTEGER NOT NULL,
    truncated INTEGER NOT NULL DEFAULT 0,
    dimensions INTEGER GENERATED ALWAYS AS (length(vector) / 4) VIRTUAL,
    vector BLOB NOT NULL CHECK (typeof(vector) = 'blob' AND length(vector) % 4 = 0),
    UNIQUE (uid, vector_property)
);
INSERT INTO "embedding_vectors" VALUES(1,'e01','embedding','mock/mock@4','9c4298e279724921031a93d7999bb392',1772366401000,0,X'0000803F000000400000404000008040');
INSERT INTO "embedding_vectors" VALUES(2,'e02','embedding','mock/mock@4','a961380b4e39f0472a91fe8a06078beb',1772366401000,0,X'0000803F000000400000404000008040');
INSERT INTO "embedding_vectors" VALUES(3,'e13','embedding','mock/mock@4','70a31b75cc329c6187e752c3bbc2d4f3',1772366401000,0,X'0000803F000000400000404000008040');
INSERT INTO "embedding_vectors" VALUES(4,'e15','embedding','mock/mock@4','faf8cf568f4c6f07094fab1238a3f5f7',1772366401000,0,X'0000803F000000400000404000008040');
INSERT INTO "embedding_vectors" VALUES(5,'e16','embedding','mock/mock@4','52431367d4e05e8fe0a85846c013868c',1772366401000,0,X'0000803F000000400000404000008040');
CREATE INDEX embedding_names ON "Entity" ("name", "uid");
CREATE INDEX embedding_marked ON "Entity" ("uid")
    WHERE needs_embedding = 1 AND "validTo" IS NULL;
CREATE INDEX embedding_unmarked ON "Entity" ("uid")
    WHERE needs_embedding = 0 AND "validTo" IS NULL;
CREATE INDEX embedding_versions ON embedding_vectors (vector_property, version);
COMMIT;
PRAGMA user_version = 1;
