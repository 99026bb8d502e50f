"""A snapshot without what is private: names of users, hosts, paths and modules."""
