"""The lines of a program that print the collectives of what it has compiled."""

from __future__ import annotations

_COLLECTIVES = "all-gather|all-reduce|reduce-scatter|all-to-all|collective-permute"


def printed_code() -> list[str]:
    """Lines that print every collective of `compiled`, as the compiler writes it."""
    return [
        f'collective = r" ({_COLLECTIVES})(-start)?\\("',
        "sent = [line for line in compiled.as_text().splitlines() if re.search(collective, line)]",
        'print("collectives:" if sent else "collectives: none, nothing is sent")',
        "for line in sent:",
        '    print(line.partition(", metadata=")[0].strip())',
    ]
