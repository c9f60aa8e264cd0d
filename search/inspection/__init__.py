"""The inspection page: draws the trace that the service returned, queries nothing itself."""
