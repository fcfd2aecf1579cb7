"""The SDK's host C interface over the simulator: libdpu, its headers, and the SDK's tool names."""
