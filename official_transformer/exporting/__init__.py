"""Models for use elsewhere: SavedModel, CTranslate2, Hugging Face, Marian."""
