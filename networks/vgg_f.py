"""VGG-F, the fast network of Chatfield, Simonyan, Vedaldi, Zisserman: Return of the Devil in the Details
(BMVC 2014), as MatConvNet's imagenet-vgg-f.mat holds it."""

from networks.layers.five_convolutions import FiveConvolutions


class VGGF(FiveConvolutions):
    """See `FiveConvolutions`; images are 224 x 224."""

    side = 224
    full_channels = (64, 256, 256, 256, 256)
    normalisation = (5, 2.0, 1e-4, 0.75)
