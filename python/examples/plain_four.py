"""Connect Four in plain Python, without NumPy: what docs/results/python.md measures."""


class ConnectFour:
    name = "plain-four"
    actions = 7

    def __init__(self):
        self.board = [[0] * 7 for _ in range(6)]  # 0 empty, 1 and 2 discs
        self.player = 0
        self.won = None
        self.count = 0

    def copy(self):
        new = ConnectFour.__new__(ConnectFour)
        new.board = [row[:] for row in self.board]
        new.player, new.won, new.count = self.player, self.won, self.count
        return new

    def to_move(self):
        return self.player

    def legal_actions(self):
        return [column for column in range(7) if self.board[5][column] == 0]

    def play(self, action):
        row = next(row for row in range(6) if self.board[row][action] == 0)
        disc = self.player + 1
        self.board[row][action] = disc
        self.count += 1
        if any(self.line(row, action, up, right, disc) >= 4 for up, right in ((0, 1), (1, 0), (1, 1), (1, -1))):
            self.won = self.player
        elif self.count == 42:
            self.won = -1
        self.player = 1 - self.player

    def line(self, row, column, up, right, disc):
        count = 1
        for sign in (1, -1):
            r, c = row + sign * up, column + sign * right
            while 0 <= r < 6 and 0 <= c < 7 and self.board[r][c] == disc:
                count += 1
                r, c = r + sign * up, c + sign * right
        return count

    def winner(self):
        return self.won

    def planes(self):
        own, other = (1, 2) if self.player == 0 else (2, 1)
        return [[[int(cell == own) for cell in row] for row in self.board], [[int(cell == other) for cell in row] for row in self.board]]

    symmetries = [([7 * (square // 7) + 6 - square % 7 for square in range(42)], [6, 5, 4, 3, 2, 1, 0])]
