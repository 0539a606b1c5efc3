"""Fifth on the data path: staged work becomes visible, exactly once."""
