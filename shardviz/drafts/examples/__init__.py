"""Problems to begin with, each named by what it shows: tables of data, and `catalogue`, which reads them."""
