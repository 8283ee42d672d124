"""How long to wait before trying again."""


def backoff(attempts: int, initial: int, maximum: int) -> int:
    """How long to wait after so many attempts: twice as long each time, up to the maximum.

    Nothing before the first attempt, and nothing where the maximum is 0. In the unit of the arguments.
    """
    if attempts <= 0 or maximum <= 0:
        return 0
    # 2**62 of anything is beyond every maximum there is.
    return min(initial << min(attempts - 1, 62), maximum)
