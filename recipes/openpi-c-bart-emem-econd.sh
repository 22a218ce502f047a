#!/bin/sh
# OpenPI-C: both, asked about the entities that BART with memory names; run openpi-c-bart-emem first.
# Needs hub access; not run here. The tests run the same commands on tiny models.
set -e
fluents train neural --arch bart --download --data openpi-c --system emem+econd --epochs 30 --learning-rate 5e-5 --batch 8 --metric last --out runs/openpi-c-bart-emem-econd
fluents track-neural openpi-c:test --checkpoint runs/openpi-c-bart-emem-econd --first runs/openpi-c-bart-emem/test.jsonl --beams 4 --output runs/openpi-c-bart-emem-econd/test.jsonl
