"""3 Step: a collective, round by round."""
