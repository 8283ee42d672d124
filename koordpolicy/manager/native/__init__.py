"""What an API server decides by itself: policies as ValidatingAdmissionPolicies, with the reasons of those that cannot be."""
