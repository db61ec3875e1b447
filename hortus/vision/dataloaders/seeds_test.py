from hortus.vision.dataloaders.seeds import Seeds


def test_purposes_hosts_and_runs_have_their_own_seeds():
    found = [
        tuple(Seeds(seed, host).pair(*purpose).numpy())
        for seed in (1, 2)
        for host in (0, 1)
        for purpose in (("order", "a"), ("order", "b"), ("batch",))
    ]
    assert len(set(found)) == 12
    assert Seeds(1).number("mix") == Seeds(1, 0).number("mix")
    assert all(0 <= number < 2**63 for pair in found for number in pair)
