#!/bin/sh
# OpenPI-C: BART large asked about each entity the baseline names; run openpi-c-bart first.
# Needs hub access; not run here. The tests run the same commands on tiny models.
set -e
fluents train neural --arch bart --download --data openpi-c --system econd --epochs 30 --learning-rate 5e-5 --batch 8 --metric last --out runs/openpi-c-bart-econd
fluents track-neural openpi-c:test --checkpoint runs/openpi-c-bart-econd --first runs/openpi-c-bart/test.jsonl --beams 4 --output runs/openpi-c-bart-econd/test.jsonl
