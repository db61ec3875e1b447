"""The command line flags that training drivers share."""

from absl import flags

from hortus.core import modes

MODES = tuple(modes.MODES)


def define_flags(flag_values: flags.FlagValues = flags.FLAGS) -> None:
    """Defines the flags of a training driver.

    Call it once, before `app.run`. A driver marks those that it needs as required:

        if __name__ == '__main__':
            hortus_flags.define_flags()
            flags.mark_flags_as_required(['experiment', 'mode', 'model_dir'])
            app.run(main)
    """
    flags.DEFINE_string(
        "experiment",
        None,
        "Name of the experiment; `hortus list experiments` shows them.",
        flag_values=flag_values,
    )
    flags.DEFINE_enum(
        "mode",
        None,
        MODES,
        f"What to do: {modes.describe(modes.MODES.values())}",
        flag_values=flag_values,
    )
    flags.DEFINE_string(
        "model_dir",
        None,
        "Folder for checkpoints, summaries and params.yaml.",
        flag_values=flag_values,
    )
    flags.DEFINE_multi_string(
        "config_file",
        [],
        "YAML or JSON file that overrides the experiment. Repeat it for several; later ones win.",
        flag_values=flag_values,
    )
    flags.DEFINE_string(
        "params_override",
        None,
        "Overrides that win over all files: a.b=1,c.d=[2, 3], or YAML or JSON text.",
        flag_values=flag_values,
    )
    flags.DEFINE_multi_string(
        "gin_file", [], "Gin config file. Can be repeated.", flag_values=flag_values
    )
    flags.DEFINE_multi_string(
        "gin_params", [], "Gin binding, `name = value`. Can be repeated.", flag_values=flag_values
    )
    flags.DEFINE_string(
        "tpu", None, "TPU name or address; sets runtime.tpu.", flag_values=flag_values
    )
    flags.DEFINE_string(
        "tf_data_service",
        None,
        "Address of a tf.data service; sets tf_data_service_address of training and validation "
        "data. It is used where enable_tf_data_service is true.",
        flag_values=flag_values,
    )
    for name in ("tpu_platform", "tfhub_handle", "tflex_output_uri"):
        flags.DEFINE_string(
            name,
            None,
            "No effect; accepted so that existing launch scripts run.",
            flag_values=flag_values,
        )
