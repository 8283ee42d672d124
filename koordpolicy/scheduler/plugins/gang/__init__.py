"""Gangs: pods that run together or not at all.

What belongs here: the state of all gangs (`gangs`), what policy says of them (`policy`), who holds back for whom (`starving`), who
goes for a gang that finds no room (`room`, of `parties`, as `victims` says), what is told (`words`). What does not: the steps of
pods and what each means for the others (`algorithms/gang_book.py`), and the status of PodGroup objects
(`scheduler/pod_group_status.py`).
"""

from typing import Final

from koordpolicy.scheduler.plugins.base import Jobs, Plugin
from koordpolicy.scheduler.plugins.gang.gangs import Gangs

COSCHEDULING: Final = Plugin(
    state=Gangs,
    helped_by=frozenset(),
    concerned=Gangs.concerned,
    gate=Gangs.gate,
    reserve_anywhere=Gangs.reserve,
    undo=Gangs.undo,
    permit=Gangs.permit,
    status=Gangs.status,
    jobs=Jobs(
        came=Gangs.came,
        went=Gangs.went,
        heard=Gangs.heard,
        renewed=Gangs.renewed,
        open=Gangs.open,
        next=Gangs.next,
        begin=Gangs.begin,
        failed=Gangs.failed,
        at_once=Gangs.at_once,
        together=Gangs.together,
        company=Gangs.company,
        make_room=Gangs.make_room,
        annotations=Gangs.annotations,
    ),
)
