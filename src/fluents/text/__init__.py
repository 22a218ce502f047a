"""How words are compared: the change template, names, stems, similarity, sentence vectors."""
