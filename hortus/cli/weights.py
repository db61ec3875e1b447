"""`hortus weights`: what pretrained weights are known, what a file is, and taking it over."""

from typing import Annotated, Optional

import typer

app = typer.Typer(help="List, look at and import pretrained weights.")

_File = Annotated[str, typer.Argument(help="Checkpoint, PyTorch file or safetensors file.")]


@app.command("list")
def list_() -> None:
    """List the pretrained models that can be taken over, and what they expect."""
    from hortus.cli import output
    from hortus.vision.weights.catalog import KNOWN

    rows = [("model", "backbone", "million parameters", "top-1 %", "images", "licence")]
    for known in KNOWN.values():
        accuracy = "" if known.accuracy is None else f"{known.accuracy:.1f}"
        mean = ", ".join(f"{x:g}" for x in known.preprocessing.mean)
        rows.append(
            (
                known.name,
                known.backbone,
                f"{known.parameters:.1f}",
                accuracy,
                f"{known.preprocessing.size} px, mean {mean}",
                known.licence,
            )
        )
    output.table(rows)


@app.command()
def inspect(file: _File) -> None:
    """Say what a file holds, and which known models it fits."""
    from hortus.vision import pretrained

    print(pretrained.inspect(file).summary())


@app.command("import")
def import_(
    file: _File,
    output: Annotated[str, typer.Option("--output", "-o", help="Folder of the new checkpoint.")],
    model: Annotated[
        Optional[str],
        typer.Option("--model", help="Name of the model, where the file alone does not tell."),
    ] = None,
) -> None:
    """Make a checkpoint of a PyTorch file, with the settings that its weights want."""
    from hortus.vision import pretrained

    written = pretrained.take_over(file, output, model)
    print(f"Checkpoint: {written[0]}")
    print(f"Settings:   {written[1]}, for --config_file")
    print(f"Origin:     {written[2]}")


@app.command()
def verify(
    checkpoint: Annotated[str, typer.Argument(help="A checkpoint that `import` wrote.")],
) -> None:
    """Check that an imported checkpoint still answers as it did."""
    from hortus.vision import pretrained

    print(
        f"{checkpoint} answers as when it was imported, within {pretrained.verify(checkpoint):.0e}"
    )
