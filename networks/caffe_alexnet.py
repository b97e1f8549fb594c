"""AlexNet of Krizhevsky, Sutskever, Hinton: ImageNet Classification with Deep Convolutional Neural Networks
(NIPS 2012), as Caffe retrained it (bvlc_alexnet) and MatConvNet's imagenet-caffe-alex.mat holds it.

It normalises before it pools, unlike CaffeNet, and its second, fourth and fifth convolution see half of the
channels each, unlike torchvision's AlexNet.
"""

from networks.layers.five_convolutions import FiveConvolutions


class CaffeAlexNet(FiveConvolutions):
    """See `FiveConvolutions`; images are 227 x 227."""

    side = 227
    full_channels = (96, 256, 384, 384, 256)
    groups = (1, 2, 1, 2, 2)
    normalisation = (5, 1.0, 2e-5, 0.75)
