"""Models for use without this project: SavedModel and CTranslate2."""
