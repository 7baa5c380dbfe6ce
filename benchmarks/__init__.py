"""Speed as ratios measured in one interleaved run; nothing here is part of the tests."""
