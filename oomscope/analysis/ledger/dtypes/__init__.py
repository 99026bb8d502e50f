"""In which dtype a program would compute, keep and copy what, under autocast and with weights in 16 bits."""
