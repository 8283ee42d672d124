"""Numbers, and what they count, as people read them."""


def number(value: float) -> str:
    """`1,523`, and one decimal below ten."""
    return f"{value:,.1f}" if 0 < abs(value) < 10 and value != int(value) else f"{value:,.0f}"


def counted(value: float, what: str, plural: str = "s") -> str:
    """`1 node`, `1,523 nodes`; `plural` is what ends the word where it is not one."""
    shown = number(value)
    return f"{shown} {what}{'' if shown == '1' else plural}"
