"""Make the 300 bills that pages of the documentation and a notebook are about; some bills are versions of others."""

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


def _listed(words: str) -> list[str]:
    return " ".join(words.split()).split(", ")


AGENCIES = _listed("""
Agriculture, Commerce, Defense, Education, Energy, Health and Human Services, Homeland Security, Housing and
Urban Development, the Interior, Labor, State, Transportation, the Treasury, Veterans Affairs
""")
SUBJECTS = _listed("""
rural clinics, bridges in flood plains, school lunches, apprenticeships, broadband in tribal areas, coastal
wetlands, wildfire recovery, small farms, veterans of the reserve, research on rare diseases, drinking water,
public libraries, freight rail, community colleges, foster families, airport noise, solar roofs, opioid
treatment, cold cases, invasive carp, volunteer fire companies, historic lighthouses, home energy bills,
weather radar, kidney donors, night trains, bee colonies, lead pipes, summer reading, hospital beds
""")
VERBS = _listed("""
improve, expand, study, insure, restore, inspect, modernize, coordinate, monitor, simplify, protect, finance,
subsidize, map, certify, replace, prioritize, audit, support, staff
""")
RECIPIENTS = _listed("""
a State, a unit of local government, a nonprofit organization, an Indian Tribe, a school district, a land grant
university, a public utility, a port authority, a county hospital, a cooperative, a regional council, a small
business, a State museum, an accredited laboratory, a group of neighbors
""")
REPORTS = _listed("""
the Committee on Appropriations, the Comptroller General, the Inspector General, the Congressional Budget
Office, the public through a website, the Governors concerned, the National Academies
""")
PLACES = _listed("""
Alder Creek, Benton, Cedar Falls, Dry Ridge, Eastport, Fox Hollow, Granite Bay, Harlan, Ironwood, Juniper,
Kettle Point, Lakeview, Maple Grove, North Fork, Oak Harbor, Pine Bluff, Quincy, Red Lodge
""")


def _sentence(draw: random.Random) -> str:
    agency, subject, verb = draw.choice(AGENCIES), draw.choice(SUBJECTS), draw.choice(VERBS)
    days, million = draw.randrange(30, 720, 15), draw.randrange(2, 400)
    return draw.choice(
        (
            f"Not later than {days} days after the date of enactment of this Act, the Secretary of {agency} shall "
            f"{verb} {subject} and report to {draw.choice(REPORTS)}.",
            f"There are authorized to be appropriated ${million},000,000 for each of fiscal years "
            f"{2021 + draw.randrange(4)} through {2026 + draw.randrange(6)} to {verb} {subject}.",
            f"To be eligible for a grant to {verb} {subject}, {draw.choice(RECIPIENTS)} shall submit an application at "
            f"such time as the Secretary of {agency} may require.",
            f"The term covered project means any effort of {draw.choice(RECIPIENTS)} to {verb} {subject} that costs "
            f"less than ${million},000 and lasts at most {days} days.",
            f"Nothing in this section limits the authority of the Secretary of {agency} to {verb} {subject} under any "
            f"other provision of law that {draw.choice(RECIPIENTS)} may invoke.",
            f"In awarding grants the Secretary of {agency} shall give priority to {draw.choice(RECIPIENTS)} with a "
            f"plan to {verb} {subject} within {days} days.",
            f"At least {draw.randrange(5, 60)} percent of the amounts made available to {verb} {subject} shall be "
            f"reserved for {draw.choice(RECIPIENTS)}, as determined by the Secretary of {agency}.",
        )
    )


def _bill(draw: random.Random) -> list[str]:
    title = (
        f"A bill to direct the Secretary of {draw.choice(AGENCIES)} to {draw.choice(VERBS)} {draw.choice(SUBJECTS)}, "
        f"and for other purposes."
    )
    return [title, *(_sentence(draw) for _ in range(draw.randrange(4, 13)))]


def _amended(draw: random.Random, bill: list[str], changes: int) -> list[str]:
    words = " ".join(bill).split()
    for _ in range(changes):
        words[draw.randrange(len(words))] = draw.choice(("each", "any", "eligible", "such", "the", "annual", "2027"))
    return [" ".join(words)]


def _naming(place: str, number: int) -> list[str]:
    return [
        f"An Act to designate the facility of the United States Postal Service located at {number} Main Street in "
        f"{place} as the {place} Veterans Memorial Post Office. Be it enacted by the Senate and House of "
        "Representatives of the United States of America in Congress assembled, any reference in a law, map, "
        "regulation, document, paper, or other record of the United States to the facility so designated shall be "
        "deemed to be a reference to that post office. The cost of a plaque to be placed in the facility shall be "
        "borne by private donations, and the Postmaster General shall hold a ceremony that is open to the public not "
        "later than 180 days after the date of enactment of this Act."
    ]


def made_bills(seed: int = 1) -> tuple[list[str], list[str]]:
    """The ids and texts of 300 bills: 200 drafts, copies and amended versions of some, reports that quote one whole,
    and post offices that are named by one template.
    """
    draw = random.Random(seed)
    drafts = [_bill(draw) for _ in range(200)]
    made = [(f"hr{number}-introduced", bill) for number, bill in enumerate(drafts, 1)]
    numbers = draw.sample(range(200), 62)
    reported = {n: _amended(draw, drafts[n], 1 + at % 9) for at, n in enumerate(numbers[12:42])}
    made += [(f"hr{n + 1}-reprinted", drafts[n]) for n in numbers[:12]]
    made += [(f"hr{n + 1}-reported", bill) for n, bill in reported.items()]
    made += [(f"hr{n + 1}-engrossed", _amended(draw, reported[n], 2)) for n in numbers[12:32]]
    made += [
        (f"report-on-hr{n + 1}", [_sentence(draw) for _ in range(12)] + drafts[n] + [_sentence(draw)])
        for n in numbers[42:]
    ]
    made += [
        (f"office-{place.lower().replace(' ', '-')}", _naming(place, 7 * at)) for at, place in enumerate(PLACES, 1)
    ]
    draw.shuffle(made)
    return [id for id, _ in made], [" ".join(bill) for _, bill in made]


def write_bills(path: Path) -> None:
    """Write the bills as Parquet: id and text."""
    ids, texts = made_bills()
    pq.write_table(pa.table({"id": ids, "text": texts}), path)
