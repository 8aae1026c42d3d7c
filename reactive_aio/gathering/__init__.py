"""What the operators that read several flows, or wait for time, are made of."""
