"""The templates of every page people see. Everything here renders what it is handed and imports none of our packages."""
