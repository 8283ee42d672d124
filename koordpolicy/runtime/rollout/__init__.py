"""Rollouts: a new revision beside the old one, on some nodes, on all, or back again.

    plan      what the old revision's Rollout says: steps, guards           (from the rule graph)
    machine   state + plan + now + what was seen + command -> next state     (pure)
    canary    which nodes a step lets go ahead                               (pure)
    shadow    both revisions on the same inputs, differences counted         (off the hot path)
    judging   facts of the rollout, and the guards' verdicts on them
    store     where the state lives: a file, or the PolicyRevision object, where all processes see it
    gate      the stages of a candidate, one after another, and at last whether it takes over: `LivePolicies` acts by it

One process (the leading manager, or a process that is alone) advances the state; all others act by it. A state is
plain data, so a process that starts in the middle of a rollout goes on where it stands.
"""
