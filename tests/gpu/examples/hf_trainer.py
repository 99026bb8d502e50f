import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

import oomscope

config = LlamaConfig(hidden_size=512, intermediate_size=1536, num_hidden_layers=8, num_attention_heads=8)
model = LlamaForCausalLM(config)
tokens = torch.randint(0, 32000, (256, 1024))
dataset = [{"input_ids": row, "labels": row} for row in tokens]
arguments = TrainingArguments("out", per_device_train_batch_size=64, max_steps=5, report_to=[], save_strategy="no")

with oomscope.record(output_dir="oom") as recording:
    recording.track(model=model)
    Trainer(model, arguments, train_dataset=dataset).train()
