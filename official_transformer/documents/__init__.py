"""Files whose text is not lines: HTML, subtitles, messages, Word."""
