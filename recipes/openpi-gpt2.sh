#!/bin/sh
# OpenPI (2020): GPT-2 medium, steps without the goal, top-p sampling.
# Needs hub access; not run here. The tests run the same commands on tiny models.
set -e
fluents train neural --arch gpt2 --download --data openpi --style openpi --epochs 30 --learning-rate 5e-5 --batch 8 --metric last --out runs/openpi-gpt2
fluents track-neural openpi:test --checkpoint runs/openpi-gpt2 --top-p 0.9 --output runs/openpi-gpt2/test.jsonl
