"""Models in and out: Hugging Face's directories, and StableHLO for serving.

hf_import.py and hf_export.py read top-down and use the rest: names.py (what a
parameter is called there), hf_config.py (config.json and EncoderConfig),
weights.py (shapes and layouts), tensors.py (safetensors), tokenizer_files.py,
fine_tuned.py (heads with labels), model_card.py, stablehlo.py.
"""
