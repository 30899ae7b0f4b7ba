"""``blemish leaderboard``: entries, ranks, sites and exports."""
