from __future__ import annotations
def model_step(eta, h, H, p):
    return None
