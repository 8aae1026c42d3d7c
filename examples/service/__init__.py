"""A service from its feed to the browser: prices that are scored, shown live, and traded.

market.py   a generated feed of prices, and their score         R1 | R2
orders.py   uploaded orders are taken, and each of them is filled
app.py      the web application: a page, Server-Sent Events, a WebSocket, uploads
page.html   the page, which draws the prices
load.py     many clients at a time, for trying what the service does under load

python3 dev.py serve                  starts it; ENGINE=spark scores on resident tasks of Spark
python -m examples.service.load       gives it some work
"""
