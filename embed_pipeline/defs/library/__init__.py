"""What other Dagster projects use: the component, the resource and the IO manager.

All three are names of the top-level package: `from embed_pipeline import EmbedPipelineComponent`.
"""
