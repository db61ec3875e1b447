"""Where examples come from: files of records, lists of files, TensorFlow Datasets."""
