"""The package as strangers meet it: installed elsewhere, on other Pythons, on other machines."""
