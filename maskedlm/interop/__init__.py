"""Models in and out: Hugging Face's directories, and StableHLO for serving.

hf_import.py and hf_export.py read top-down and use the rest: names.py (what a
parameter is called there), fields.py (what an option is), hf_config.py
(config.json and EncoderConfig), weights.py (shapes and layouts), tensors.py
(safetensors), tokenizer_files.py, fine_tuned.py (heads with labels),
sentence_transformers.py (texts' vectors), model_card.py, stablehlo.py.
"""
