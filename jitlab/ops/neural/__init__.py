"""Operations of neural networks: convolutions and pooling.

Parts, in the order of the data: convolution, pooling, rules_nn.
"""
