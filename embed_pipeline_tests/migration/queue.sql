BEGIN TRANSACTION;
CREATE TABLE budget_bucket (
    provider TEXT NOT NULL,
    bucket INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    tokens INTEGER NOT NULL,
    PRIMARY KEY (provider, bucket)
) WITHOUT ROWID;
INSERT INTO "budget_bucket" VALUES('mock',1772475828000000,3,700);
CREATE TABLE counter (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
INSERT INTO "counter" VALUES('entities_embedded',5);
INSERT INTO "counter" VALUES('jobs_completed',5);
INSERT INTO "counter" VALUES('jobs_deferred',8);
INSERT INTO "counter" VALUES('jobs_enqueued',21);
INSERT INTO "counter" VALUES('jobs_failed',4);
INSERT INTO "counter" VALUES('jobs_leased',63);
INSERT INTO "counter" VALUES('jobs_recovered',14);
INSERT INTO "counter" VALUES('jobs_released',26);
INSERT INTO "counter" VALUES('jobs_retried',3);
INSERT INTO "counter" VALUES('tokens_used',700);
CREATE TABLE embed_job (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    entity_uid TEXT NOT NULL,
    model TEXT NOT NULL,
    version TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'processing', 'completed', 'failed')),
    priority INTEGER NOT NULL CHECK (priority BETWEEN 0 AND 9),
    rank INTEGER GENERATED ALWAYS AS (-priority) VIRTUAL,
    created_at INTEGER NOT NULL,
    available_at INTEGER NOT NULL,
    processed_at INTEGER,
    lock_owner TEXT,
    lock_until INTEGER,
    lease_token TEXT,
    done_token TEXT,
    last_heartbeat_at INTEGER,
    attempts INTEGER NOT NULL DEFAULT 0,
    max_attempts INTEGER NOT NULL,
    recoveries INTEGER NOT NULL DEFAULT 0,
    recovered_at INTEGER,
    strikes INTEGER NOT NULL DEFAULT 0,
    tier INTEGER GENERATED ALWAYS AS (
        CASE WHEN strikes >= 4 THEN 2 WHEN strikes >= 2 THEN 1 ELSE 0 END
    ) VIRTUAL,
    force INTEGER NOT NULL DEFAULT 0,
    again INTEGER NOT NULL DEFAULT 0,
    error TEXT,
    error_type TEXT,
    error_category TEXT,
    error_stack TEXT,
    fail_code TEXT,
    fail_reason TEXT,
    UNIQUE (entity_uid, model, version)
);
INSERT INTO "embed_job" VALUES(1,'1d73eea9f95f42adb29a7c3fe7b73902','e01','mock/mock@4','9c4298e279724921031a93d7999bb392','completed',5,1772366400000,1772366400000,1772366401000,NULL,NULL,NULL,'worker-1',1772366401000,0,3,0,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(2,'b2f58abc418444f8af517372ad2f9b5c','e02','mock/mock@4','a961380b4e39f0472a91fe8a06078beb','pending',9,1772366400000,1772475764000,NULL,NULL,NULL,NULL,NULL,1772475768000,0,3,0,NULL,0,1,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(3,'a70c6fc3d1c54bf0a0a476872f4e2b4b','e13','mock/mock@4','70a31b75cc329c6187e752c3bbc2d4f3','completed',5,1772366400000,1772366400000,1772366401000,NULL,NULL,NULL,'worker-1',1772366401000,0,3,0,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(4,'819f2863f5294881914f41fcfd580f21','e15','mock/mock@4','faf8cf568f4c6f07094fab1238a3f5f7','processing',9,1772366400000,1772475757000,NULL,'worker-2',1772476061000,'worker-2 at 18:22:41',NULL,1772475761000,0,3,0,NULL,0,1,2,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(5,'ae17a5ae014d4f20b321387225256794','e16','mock/mock@4','52431367d4e05e8fe0a85846c013868c','completed',5,1772366400000,1772366400000,1772366401000,NULL,NULL,NULL,'worker-1',1772366401000,0,3,0,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(6,'ed5741c372484a4cb5423d7faa4c6eb4','e07','mock/mock@4','75a658c0e9dc50c93503cc6018799a85','failed',5,1772366402000,1772366402000,1772366404000,NULL,NULL,NULL,NULL,1772366404000,1,3,0,NULL,0,0,0,'The text is too long.','OldError','PERMANENT',NULL,NULL,'OldError');
INSERT INTO "embed_job" VALUES(7,'9730e0d401a84512bdbdbd3818ec75b6','e08','mock/mock@4','91e4763e6291e9b290635c5853a0d9a0','failed',5,1772366402000,1772366528255,1772366587000,NULL,NULL,NULL,NULL,1772366587000,3,3,0,NULL,0,0,0,'The provider did not answer.','OldError','TRANSIENT',NULL,NULL,'OldError');
INSERT INTO "embed_job" VALUES(8,'542466fa3a35492781dbaa23371949ef','e09','mock/mock@4','9713240442117bf3658434477756e3af','failed',5,1772366402000,1772366402000,1772366648000,NULL,NULL,NULL,NULL,1772366648000,1,3,0,NULL,0,0,0,'The entity is gone.','OldError','PERMANENT',NULL,'entity_gone','OldError');
INSERT INTO "embed_job" VALUES(9,'9b87e7ac7cf640bf81d84282ef3cff40','e12','mock/mock@4','ce5ea9f2541454298a5ac2d35e8153e0','failed',5,1772366708000,1772464523000,1772471124000,NULL,NULL,NULL,NULL,1772467524000,0,3,15,1772471124000,15,0,0,'every worker that took this job ended without finishing it','LeaseExpired','PERMANENT',NULL,'timeout','lease_expired');
INSERT INTO "embed_job" VALUES(10,'f2d3c9bf3f7648d28da7ca28d5e777e4','e10','mock/mock@4','606e382f45ce8e85cf0945bd6570ca07','pending',5,1772474725000,1772474788000,NULL,NULL,NULL,NULL,NULL,1772475034000,0,3,0,NULL,2,0,0,'The batch was refused.','OldError','TRANSIENT',NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(11,'41f51f75b4984fde933a654a271ae1d8','e11','mock/mock@4','8fd814af8fb46d437c7e15b21b34c718','pending',5,1772474725000,1772475034000,NULL,NULL,NULL,NULL,NULL,1772475034000,0,3,0,NULL,4,0,0,'The batch was refused.','OldError','TRANSIENT',NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(12,'8bf3b87e39d24c4085ae9ffed94decec','e17','mock/mock@4','46e436d4855ff5227a911a5df3661e16','pending',5,1772474725000,1772475095000,NULL,NULL,NULL,NULL,NULL,1772475768000,0,3,0,NULL,0,0,0,'The key is not accepted.','OldError','CRITICAL',NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(13,'dc78dd0b371e4f388fe452d2dc377ff5','e06','mock/mock@4','872348247acdc2179a4d5a662df50263','processing',9,1772475155000,1772475155000,NULL,'worker-gone',1772475457000,'worker-gone at 18:12:37',NULL,1772475157000,0,3,0,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(14,'fe973a60a9e04d3b862d7d4e52d0c808','e05','mock/mock@4','c6786bd70db715c6403346969a5881a8','processing',9,1772475758000,1772475758000,NULL,'worker-2',1772476060000,'worker-2 at 18:22:40',NULL,1772475760000,0,3,0,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(15,'fa124471a1144425b82ec0c4a8cec11c','e04','mock/mock@4','f30d3cdc8311276181e7f502be0c97fe','pending',9,1772475762000,1772475765056,NULL,NULL,NULL,NULL,NULL,1772475768000,1,3,0,NULL,0,0,0,'The provider did not answer.','OldError','TRANSIENT',NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(16,'de38f0bcb9b94cc194bd4741c09686a5','e03','mock/mock@4','7679343a05497d624251f83ecbc488ba','pending',5,1772475765000,1772475765000,NULL,NULL,NULL,NULL,NULL,1772475768000,0,3,0,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(17,'181371b16e05493ea68c41061b54abb8','e13','mock/mock@4','56aaf523afee31fe68545b44f3d79ddb','pending',5,1772475765000,1772475765000,NULL,NULL,NULL,NULL,NULL,1772475768000,0,3,0,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(18,'beaad3a976e04f078616240f8ed9d74b','e18','mock/mock@4','e19e7a4c221c278a595ca735f93b5ea9','pending',9,1772475766000,1772475766000,NULL,NULL,NULL,NULL,NULL,1772475768000,0,3,0,NULL,0,0,0,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "embed_job" VALUES(19,'2224de834387486aa3ee25677ad39d19','e19','mock/mock@4','d65aa1885d1467c37966cd3c78394524','pending',9,1772475766000,1772479368000,NULL,NULL,NULL,NULL,NULL,1772475768000,0,3,0,NULL,0,0,0,'It is too early.','OldError','TRANSIENT',NULL,NULL,NULL);
CREATE TABLE event (
    seq INTEGER PRIMARY KEY,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    owner TEXT,
    reason TEXT,
    job_ids TEXT NOT NULL,
    facts TEXT NOT NULL
);
INSERT INTO "event" VALUES(1,1772366400000,'jobs.enqueued',NULL,NULL,'["1d73eea9f95f42adb29a7c3fe7b73902","b2f58abc418444f8af517372ad2f9b5c","a70c6fc3d1c54bf0a0a476872f4e2b4b","819f2863f5294881914f41fcfd580f21","ae17a5ae014d4f20b321387225256794"]','{"new_jobs": 5}');
INSERT INTO "event" VALUES(2,1772366401000,'jobs.leased','worker-1',NULL,'["1d73eea9f95f42adb29a7c3fe7b73902","b2f58abc418444f8af517372ad2f9b5c","a70c6fc3d1c54bf0a0a476872f4e2b4b","819f2863f5294881914f41fcfd580f21","ae17a5ae014d4f20b321387225256794"]','{}');
INSERT INTO "event" VALUES(3,1772366401000,'jobs.completed','worker-1',NULL,'["1d73eea9f95f42adb29a7c3fe7b73902","819f2863f5294881914f41fcfd580f21","a70c6fc3d1c54bf0a0a476872f4e2b4b","ae17a5ae014d4f20b321387225256794","b2f58abc418444f8af517372ad2f9b5c"]','{}');
INSERT INTO "event" VALUES(4,1772366402000,'jobs.enqueued',NULL,NULL,'["ed5741c372484a4cb5423d7faa4c6eb4","9730e0d401a84512bdbdbd3818ec75b6","542466fa3a35492781dbaa23371949ef"]','{"new_jobs": 3}');
INSERT INTO "event" VALUES(5,1772366404000,'jobs.leased','worker-1',NULL,'["ed5741c372484a4cb5423d7faa4c6eb4","9730e0d401a84512bdbdbd3818ec75b6","542466fa3a35492781dbaa23371949ef"]','{}');
INSERT INTO "event" VALUES(6,1772366404000,'jobs.released','worker-1',NULL,'["542466fa3a35492781dbaa23371949ef","9730e0d401a84512bdbdbd3818ec75b6"]','{}');
INSERT INTO "event" VALUES(7,1772366404000,'jobs.failed','worker-1',NULL,'["ed5741c372484a4cb5423d7faa4c6eb4"]','{"retried": []}');
INSERT INTO "event" VALUES(8,1772366465000,'jobs.leased','worker-1',NULL,'["9730e0d401a84512bdbdbd3818ec75b6","542466fa3a35492781dbaa23371949ef"]','{}');
INSERT INTO "event" VALUES(9,1772366465000,'jobs.released','worker-1',NULL,'["542466fa3a35492781dbaa23371949ef"]','{}');
INSERT INTO "event" VALUES(10,1772366465000,'jobs.failed','worker-1',NULL,'[]','{"retried": ["9730e0d401a84512bdbdbd3818ec75b6"]}');
INSERT INTO "event" VALUES(11,1772366526000,'jobs.leased','worker-1',NULL,'["542466fa3a35492781dbaa23371949ef","9730e0d401a84512bdbdbd3818ec75b6"]','{}');
INSERT INTO "event" VALUES(12,1772366526000,'jobs.released','worker-1',NULL,'["542466fa3a35492781dbaa23371949ef"]','{}');
INSERT INTO "event" VALUES(13,1772366526000,'jobs.failed','worker-1',NULL,'[]','{"retried": ["9730e0d401a84512bdbdbd3818ec75b6"]}');
INSERT INTO "event" VALUES(14,1772366587000,'jobs.leased','worker-1',NULL,'["542466fa3a35492781dbaa23371949ef","9730e0d401a84512bdbdbd3818ec75b6"]','{}');
INSERT INTO "event" VALUES(15,1772366587000,'jobs.released','worker-1',NULL,'["542466fa3a35492781dbaa23371949ef"]','{}');
INSERT INTO "event" VALUES(16,1772366587000,'jobs.failed','worker-1',NULL,'["9730e0d401a84512bdbdbd3818ec75b6"]','{"retried": []}');
INSERT INTO "event" VALUES(17,1772366648000,'jobs.leased','worker-1',NULL,'["542466fa3a35492781dbaa23371949ef"]','{}');
INSERT INTO "event" VALUES(18,1772366648000,'jobs.failed','worker-1',NULL,'["542466fa3a35492781dbaa23371949ef"]','{"retried": []}');
INSERT INTO "event" VALUES(19,1772366708000,'jobs.enqueued',NULL,NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{"new_jobs": 1}');
INSERT INTO "event" VALUES(20,1772366710000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(21,1772370310000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(22,1772373911000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(23,1772377511000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(24,1772381112000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(25,1772384712000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(26,1772388313000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(27,1772391913000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(28,1772395514000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(29,1772399114000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(30,1772399114000,'health.critical',NULL,'every run dies','[]','{}');
INSERT INTO "event" VALUES(31,1772402715000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(32,1772406315000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(33,1772409916000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(34,1772413516000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(35,1772417117000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(36,1772420717000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(37,1772424318000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(38,1772427918000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(39,1772431519000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(40,1772435119000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(41,1772438720000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(42,1772442320000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(43,1772445921000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(44,1772449521000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(45,1772453122000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(46,1772456722000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(47,1772460323000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(48,1772463923000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": []}');
INSERT INTO "event" VALUES(49,1772467524000,'jobs.leased','worker-killed',NULL,'["9b87e7ac7cf640bf81d84282ef3cff40"]','{}');
INSERT INTO "event" VALUES(50,1772471124000,'jobs.recovered',NULL,'lease expired','["9b87e7ac7cf640bf81d84282ef3cff40"]','{"previous_owners": ["worker-killed"], "failed": ["9b87e7ac7cf640bf81d84282ef3cff40"]}');
INSERT INTO "event" VALUES(51,1772471124000,'health.degraded',NULL,NULL,'[]','{"consecutive_failures": 5}');
INSERT INTO "event" VALUES(52,1772474725000,'jobs.enqueued',NULL,NULL,'["f2d3c9bf3f7648d28da7ca28d5e777e4","41f51f75b4984fde933a654a271ae1d8","8bf3b87e39d24c4085ae9ffed94decec"]','{"new_jobs": 3}');
INSERT INTO "event" VALUES(53,1772474727000,'jobs.leased','worker-1',NULL,'["f2d3c9bf3f7648d28da7ca28d5e777e4","41f51f75b4984fde933a654a271ae1d8","8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(54,1772474727000,'jobs.released','worker-1',NULL,'["41f51f75b4984fde933a654a271ae1d8","8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(55,1772474727000,'jobs.deferred','worker-1','The batch was refused.','["f2d3c9bf3f7648d28da7ca28d5e777e4"]','{"strike": true}');
INSERT INTO "event" VALUES(56,1772474788000,'jobs.leased','worker-1',NULL,'["41f51f75b4984fde933a654a271ae1d8","8bf3b87e39d24c4085ae9ffed94decec","f2d3c9bf3f7648d28da7ca28d5e777e4"]','{}');
INSERT INTO "event" VALUES(57,1772474788000,'jobs.released','worker-1',NULL,'["41f51f75b4984fde933a654a271ae1d8","8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(58,1772474788000,'jobs.deferred','worker-1','The batch was refused.','["f2d3c9bf3f7648d28da7ca28d5e777e4"]','{"strike": true}');
INSERT INTO "event" VALUES(59,1772474849000,'jobs.leased','worker-1',NULL,'["41f51f75b4984fde933a654a271ae1d8","8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(60,1772474849000,'jobs.released','worker-1',NULL,'["8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(61,1772474849000,'jobs.deferred','worker-1','The batch was refused.','["41f51f75b4984fde933a654a271ae1d8"]','{"strike": true}');
INSERT INTO "event" VALUES(62,1772474910000,'jobs.leased','worker-1',NULL,'["8bf3b87e39d24c4085ae9ffed94decec","41f51f75b4984fde933a654a271ae1d8"]','{}');
INSERT INTO "event" VALUES(63,1772474910000,'jobs.released','worker-1',NULL,'["8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(64,1772474910000,'jobs.deferred','worker-1','The batch was refused.','["41f51f75b4984fde933a654a271ae1d8"]','{"strike": true}');
INSERT INTO "event" VALUES(65,1772474971000,'jobs.leased','worker-1',NULL,'["8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(66,1772474972000,'jobs.leased','worker-1',NULL,'["f2d3c9bf3f7648d28da7ca28d5e777e4","41f51f75b4984fde933a654a271ae1d8"]','{}');
INSERT INTO "event" VALUES(67,1772474972000,'jobs.released','worker-1',NULL,'["8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(68,1772474972000,'jobs.released','worker-1',NULL,'["f2d3c9bf3f7648d28da7ca28d5e777e4"]','{}');
INSERT INTO "event" VALUES(69,1772474972000,'jobs.deferred','worker-1','The batch was refused.','["41f51f75b4984fde933a654a271ae1d8"]','{"strike": true}');
INSERT INTO "event" VALUES(70,1772475033000,'jobs.leased','worker-1',NULL,'["8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(71,1772475034000,'jobs.leased','worker-1',NULL,'["f2d3c9bf3f7648d28da7ca28d5e777e4","41f51f75b4984fde933a654a271ae1d8"]','{}');
INSERT INTO "event" VALUES(72,1772475034000,'jobs.released','worker-1',NULL,'["8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(73,1772475034000,'jobs.released','worker-1',NULL,'["f2d3c9bf3f7648d28da7ca28d5e777e4"]','{}');
INSERT INTO "event" VALUES(74,1772475034000,'jobs.deferred','worker-1','The batch was refused.','["41f51f75b4984fde933a654a271ae1d8"]','{"strike": true}');
INSERT INTO "event" VALUES(75,1772475095000,'jobs.leased','worker-1',NULL,'["8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(76,1772475095000,'jobs.deferred','worker-1','The key is not accepted.','["8bf3b87e39d24c4085ae9ffed94decec"]','{"strike": false}');
INSERT INTO "event" VALUES(77,1772475155000,'jobs.enqueued',NULL,NULL,'["dc78dd0b371e4f388fe452d2dc377ff5"]','{"new_jobs": 1}');
INSERT INTO "event" VALUES(78,1772475157000,'jobs.leased','worker-gone',NULL,'["dc78dd0b371e4f388fe452d2dc377ff5","8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(79,1772475157000,'jobs.released','worker-gone',NULL,'["8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(80,1772475757000,'jobs.enqueued',NULL,NULL,'["819f2863f5294881914f41fcfd580f21"]','{"new_jobs": 1}');
INSERT INTO "event" VALUES(81,1772475758000,'jobs.enqueued',NULL,NULL,'["fe973a60a9e04d3b862d7d4e52d0c808"]','{"new_jobs": 1}');
INSERT INTO "event" VALUES(82,1772475760000,'jobs.leased','worker-2',NULL,'["819f2863f5294881914f41fcfd580f21","fe973a60a9e04d3b862d7d4e52d0c808","8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(83,1772475760000,'jobs.released','worker-2',NULL,'["819f2863f5294881914f41fcfd580f21","8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(84,1772475761000,'jobs.leased','worker-2',NULL,'["819f2863f5294881914f41fcfd580f21","8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(85,1772475761000,'jobs.released','worker-2',NULL,'["8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(86,1772475761000,'jobs.enqueued',NULL,NULL,'["819f2863f5294881914f41fcfd580f21"]','{"new_jobs": 0}');
INSERT INTO "event" VALUES(87,1772475762000,'jobs.enqueued',NULL,NULL,'["fa124471a1144425b82ec0c4a8cec11c"]','{"new_jobs": 1}');
INSERT INTO "event" VALUES(88,1772475764000,'jobs.leased','worker-1',NULL,'["fa124471a1144425b82ec0c4a8cec11c","8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(89,1772475764000,'jobs.released','worker-1',NULL,'["8bf3b87e39d24c4085ae9ffed94decec"]','{}');
INSERT INTO "event" VALUES(90,1772475764000,'jobs.failed','worker-1',NULL,'[]','{"retried": ["fa124471a1144425b82ec0c4a8cec11c"]}');
INSERT INTO "event" VALUES(91,1772475764000,'jobs.enqueued',NULL,NULL,'["b2f58abc418444f8af517372ad2f9b5c"]','{"new_jobs": 1}');
INSERT INTO "event" VALUES(92,1772475765000,'jobs.enqueued',NULL,NULL,'["de38f0bcb9b94cc194bd4741c09686a5","181371b16e05493ea68c41061b54abb8"]','{"new_jobs": 2}');
INSERT INTO "event" VALUES(93,1772475766000,'jobs.enqueued',NULL,NULL,'["beaad3a976e04f078616240f8ed9d74b","2224de834387486aa3ee25677ad39d19"]','{"new_jobs": 2}');
INSERT INTO "event" VALUES(94,1772475768000,'jobs.leased','worker-1',NULL,'["b2f58abc418444f8af517372ad2f9b5c","fa124471a1144425b82ec0c4a8cec11c","beaad3a976e04f078616240f8ed9d74b","2224de834387486aa3ee25677ad39d19","8bf3b87e39d24c4085ae9ffed94decec","de38f0bcb9b94cc194bd4741c09686a5","181371b16e05493ea68c41061b54abb8"]','{}');
INSERT INTO "event" VALUES(95,1772475768000,'jobs.released','worker-1',NULL,'["181371b16e05493ea68c41061b54abb8","8bf3b87e39d24c4085ae9ffed94decec","b2f58abc418444f8af517372ad2f9b5c","beaad3a976e04f078616240f8ed9d74b","de38f0bcb9b94cc194bd4741c09686a5","fa124471a1144425b82ec0c4a8cec11c"]','{}');
INSERT INTO "event" VALUES(96,1772475768000,'jobs.deferred','worker-1','It is too early.','["2224de834387486aa3ee25677ad39d19"]','{"strike": false}');
INSERT INTO "event" VALUES(97,1772475828000,'limiter.paused',NULL,NULL,'[]','{"provider": "mock", "until": 1772475848000}');
INSERT INTO "event" VALUES(98,1772475828000,'breaker.opened',NULL,'The provider did not answer.','[]','{"breaker": "mock"}');
INSERT INTO "event" VALUES(99,1772475828000,'queue.paused',NULL,'Until tomorrow.','[]','{}');
CREATE TABLE shared_state (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "shared_state" VALUES('breaker:mock','{"name": "mock", "generation": 1, "level": 1, "until": 1772475829000, "reason": "The provider did not answer."}');
INSERT INTO "shared_state" VALUES('health','{"consecutive_failures": 7, "last_success_at": 1772366401000, "recent": ["", "", "", "", "", "OldError: The text is too long.", "OldError: The provider did not answer.", "OldError: The provider did not answer.", "OldError: The provider did not answer.", "LeaseExpired: every worker that took this job ended without finishing it", "OldError: The provider did not answer.", "OldError: The provider did not answer."], "crash_loop": true}');
INSERT INTO "shared_state" VALUES('pause:mock','{"until": 1772475848000}');
INSERT INTO "shared_state" VALUES('switch','{"state": "paused", "reason": "Until tomorrow.", "since": 1772475828000, "generation": 0}');
CREATE INDEX job_ready ON embed_job (model, rank, tier, available_at) WHERE status = 'pending';
CREATE INDEX job_expiry ON embed_job (lock_until) WHERE status = 'processing';
CREATE INDEX job_holder ON embed_job (lock_owner, lease_token) WHERE status = 'processing';
CREATE INDEX job_ended ON embed_job (processed_at, id) WHERE status IN ('completed', 'failed');
CREATE INDEX job_failed ON embed_job (processed_at, id) WHERE status = 'failed';
CREATE INDEX event_at ON event (at);
COMMIT;
PRAGMA user_version = 3;
