"""GPUs, accelerators and RDMA cards of a node, as NVIDIA's library, /sys and the files of other vendors tell of them."""
