"""The templates of every page people see. Everything here renders what it is handed and imports no room of ours but the metrics."""
