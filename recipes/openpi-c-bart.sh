#!/bin/sh
# OpenPI-C: BART large, goal and steps, beam 4.
# Needs hub access; not run here. The tests run the same commands on tiny models.
set -e
fluents train neural --arch bart --download --data openpi-c --epochs 30 --learning-rate 5e-5 --batch 8 --metric last --out runs/openpi-c-bart
fluents track-neural openpi-c:test --checkpoint runs/openpi-c-bart --beams 4 --output runs/openpi-c-bart/test.jsonl
