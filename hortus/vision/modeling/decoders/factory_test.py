import dataclasses

import keras
import pytest

from hortus import hyperparams
from hortus.vision.configs import decoders as decoder_configs
from hortus.vision.configs import retinanet
from hortus.vision.modeling.decoders import factory

SPECS = {"3": (None, 8, 8, 4)}


@dataclasses.dataclass
class Tiny(hyperparams.Config):
    width: int = 4


@dataclasses.dataclass
class DecoderAndTiny(decoder_configs.Decoder):
    tiny: Tiny = dataclasses.field(default_factory=Tiny)


@factory.register_decoder_builder("tiny")
def build_tiny(input_specs, model_config, l2_regularizer=None):
    inputs = {level: keras.Input(shape[1:], name=level) for level, shape in input_specs.items()}
    conv = keras.layers.Conv2D(
        model_config.decoder.get().width, 1, kernel_regularizer=l2_regularizer
    )
    outputs = {level: conv(x) for level, x in inputs.items()}
    model = keras.Model(inputs, outputs)
    model.output_specs = {level: x.shape for level, x in outputs.items()}
    return model


def model_config(decoder):
    config = retinanet.RetinaNet()
    config.decoder = decoder
    return config


def test_a_decoder_of_ones_own_joins_by_subclassing_the_config():
    config = model_config(DecoderAndTiny(type="tiny", tiny=Tiny(width=5)))
    model = factory.build_decoder(SPECS, config, keras.regularizers.L2(0.1))
    assert model.output_specs == {"3": (None, 8, 8, 5)}
    assert len(model.losses) == 1


def test_arguments_may_be_given_by_name():
    model = factory.build_decoder(
        input_specs=SPECS,
        model_config=model_config(DecoderAndTiny(type="tiny")),
        l2_regularizer=None,
    )
    assert not model.losses


def test_identity_is_no_decoder():
    config = model_config(decoder_configs.Decoder(type="identity"))
    assert factory.build_decoder(SPECS, config) is None


def test_an_unknown_type_names_what_is_near():
    config = hyperparams.Config({"decoder": {"type": "fpnn"}})
    with pytest.raises(KeyError, match="unknown decoder 'fpnn'; did you mean 'fpn'"):
        factory.build_decoder(SPECS, config)


def test_every_type_of_the_config_can_be_built():
    ours = {field.name for field in dataclasses.fields(decoder_configs.Decoder)} - {"type"}
    assert ours == set(factory.registered_decoders()) - {"tiny"}
