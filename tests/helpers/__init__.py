"""What several tests share: configs, corpora, encoders, stand-ins."""
