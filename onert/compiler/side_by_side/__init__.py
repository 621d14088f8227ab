"""What runs at a time under the Parallel executor: steps, and inside of a step groups on threads of their own."""
