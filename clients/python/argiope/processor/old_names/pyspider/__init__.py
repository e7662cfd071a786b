"""pyspider's import names for argiope.processor, so that its scripts run as they are. Only processors have this folder on their path."""
__version__ = "0.3.10"  # whose scripts these names are for
