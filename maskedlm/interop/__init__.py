"""Imports and exports models: Hugging Face directories and StableHLO.

huggingface/importer.py and huggingface/exporter.py read top-down and use the
other modules: parameter_names.py (names of parameters), option_names.py (names
of options), config_json.py (config.json and EncoderConfig), weights.py (shapes
and layouts), tensors.py (safetensors), tokenizer_files.py, labels.py (heads
with labels), sentence_transformers.py (text vectors), model_card.py.
"""
