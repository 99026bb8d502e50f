import lightning
import torch

import oomscope


class Regression(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(8)])
        self.outputs = []

    def training_step(self, batch, _):
        prediction = self.net(batch)
        self.outputs.append(prediction)  # on the GPU, with its graph
        return prediction.pow(2).mean()

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())


data = torch.utils.data.DataLoader(torch.randn(400_000, 2048), batch_size=4096)
trainer = lightning.Trainer(max_steps=200, logger=False, enable_checkpointing=False, enable_progress_bar=False)

with oomscope.record(output_dir="oom"):
    trainer.fit(Regression(), data)
