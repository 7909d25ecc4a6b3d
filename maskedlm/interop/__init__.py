"""Imports and exports models: Hugging Face directories and StableHLO.

Start with huggingface/importer.py and huggingface/exporter.py, which use the
other modules: parameter_names.py (names of parameters), option_names.py (names
of options), config_json.py (config.json and EncoderConfig), weights.py (shapes
and layouts), tensors.py (safetensors), match_tensors.py, tokenizer_files.py,
labels.py (heads with labels), sentence_transformers.py (text vectors),
model_card.py.
"""
