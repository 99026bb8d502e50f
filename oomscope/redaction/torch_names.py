"""Names of PyTorch's own interface, which tell nothing about a program wherever they stand."""

from __future__ import annotations

CLASSES = frozenset({
    "Tensor", "Parameter", "UninitializedParameter", "Module", "ModuleList", "ModuleDict", "Sequential",
    "ParameterList", "ParameterDict", "Identity", "Linear", "Bilinear", "LazyLinear", "Embedding", "EmbeddingBag",
    "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "Fold", "Unfold",
    "MaxPool1d",
    "MaxPool2d", "MaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d", "BatchNorm1d", "BatchNorm2d",
    "BatchNorm3d", "SyncBatchNorm", "GroupNorm", "LayerNorm", "RMSNorm", "InstanceNorm1d", "InstanceNorm2d",
    "InstanceNorm3d", "LocalResponseNorm", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "ReLU",
    "ReLU6", "LeakyReLU", "PReLU", "ELU", "SELU", "CELU", "GELU", "GLU", "SiLU", "Mish", "Softplus", "Softmax",
    "LogSoftmax", "Softmin", "Sigmoid", "LogSigmoid", "Tanh", "Hardswish", "Hardsigmoid", "Hardtanh", "Flatten",
    "Unflatten", "Upsample", "PixelShuffle", "PixelUnshuffle", "ZeroPad2d", "ReflectionPad2d", "RNN", "LSTM", "GRU",
    "RNNCell", "LSTMCell", "GRUCell", "MultiheadAttention", "Transformer", "TransformerEncoder", "TransformerDecoder",
    "TransformerEncoderLayer", "TransformerDecoderLayer", "CrossEntropyLoss", "NLLLoss", "MSELoss", "L1Loss",
    "SmoothL1Loss", "HuberLoss", "BCELoss", "BCEWithLogitsLoss", "KLDivLoss", "CTCLoss", "CosineEmbeddingLoss",
    "TripletMarginLoss", "DataParallel", "DistributedDataParallel", "FullyShardedDataParallel", "DataLoader",
    "Dataset", "TensorDataset", "GradScaler", "CUDAGraph", "OptimizedModule", "Optimizer", "FakeTensor", "DTensor",
})  # fmt: skip
"""Of torch.nn, torch.optim, torch.utils.data and around them."""

FUNCTIONS = frozenset({
    "scaled_dot_product_attention", "cross_entropy", "nll_loss", "mse_loss", "l1_loss", "smooth_l1_loss", "kl_div",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "layer_norm", "batch_norm", "group_norm", "rms_norm",
    "instance_norm", "log_softmax", "softmax", "gelu", "relu", "silu", "leaky_relu", "dropout", "embedding", "linear",
    "conv1d", "conv2d", "conv3d", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d", "interpolate", "one_hot", "matmul",
    "einsum", "clip_grad_norm_", "multi_head_attention_forward",
})  # fmt: skip
"""Of torch and torch.nn.functional."""
