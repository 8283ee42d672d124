"""Makes the image of all processes as an OCI archive: no registry, no daemon, no root.

What goes in is pinned by hash in `debian.lock` and the checkout's `requirements.lock`, and is fetched by apt-get and pip. The
file tree is laid out here, without running any package's scripts. Bytecode, layers and manifests are then written by the
interpreter of that very tree, so that not one byte depends on the machine that builds.
"""
