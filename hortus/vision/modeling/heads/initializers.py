"""The random numbers that heads begin with."""

import keras

SMALL = keras.initializers.RandomNormal(stddev=0.01)
"""For the convolutions of heads that look at whole images."""
TINY = keras.initializers.RandomNormal(stddev=1e-5)
"""For predictions that shall begin as their bias."""
HE_FAN_OUT = keras.initializers.VarianceScaling(2.0, "fan_out", "untruncated_normal")
"""For the convolutions of heads that look at regions (He et al. 2015)."""
UNIFORM_FAN_OUT = keras.initializers.VarianceScaling(1 / 3, "fan_out", "uniform")
"""For the dense layers of heads that look at regions."""
