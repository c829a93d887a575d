"""The languages before HLO: StableHLO and Shardy."""
