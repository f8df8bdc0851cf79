"""The trial: what a careless user, a hostile file or a dying machine can do, and the one way in which it must end."""
